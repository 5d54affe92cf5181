# The last config file of every Puma that longtail starts. The files before it may be those of a server that runs: whatever they name,
# this Puma writes none of its files, opens none of its sockets, starts none of its plugins. Written for Puma 3 to 8.
#
# Before this text longtail writes `longtail`, with what only it knows (isolation.rs), and `longtail_asks` where Puma is only to say what
# its configuration is, and to end before anything is bound.
longtail_asks ||= false
own_path = @path

# Puma reads its usual files only where it is given none; here it is given this one.
if longtail[:reads_usual_files] && @options[:config_files] == [own_path]
  @options.delete(:config_files)
  read = @config.config_files.compact
  read.each { |file| _load_from(file) }
  @options[:config_files] = [own_path]
else
  read = @options[:config_files] - [own_path]
end

# What systemd sets for its services: longtail itself may run in one.
%w[NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_FDS LISTEN_PID LISTEN_FDNAMES].each { |name| ENV.delete(name) }

# What is set here counts more than what any config file says.
keep_apart = lambda do |launcher|
  options = launcher.options
  options[:pidfile] = nil
  options[:state] = nil
  options[:redirect_stdout] = nil
  options[:redirect_stderr] = nil
  # Puma 3 and 4: one in the background would be out of sight.
  options[:daemon] = false
  # `bind_to_activated_sockets` replaces these.
  options[:binds] = [longtail[:bind]]
  options[:control_url] = longtail[:control_url]
  options[:control_auth_token] = longtail[:control_token]
  if options[:custom_logger]
    options[:custom_logger] = nil
    launcher.log_writer.custom_logger = nil
  end
  launcher.config.plugins.define_singleton_method(:fire_starts) { |_| }
  Puma::Plugins.define_singleton_method(:fire_background) { nil }
end

say = lambda do |kind, *words|
  $stdout.write("\nlongtail-#{kind} #{words.join(' ')}\n")
end

say_settings = lambda do |options|
  names = %i[max_fast_inline queue_requests enable_keep_alives wait_for_less_busy_worker]
  words = names.map { |name| "#{name}=#{options[name].inspect}" }
  waits = defined?(Puma::ThreadPool) ? Puma::ThreadPool.method_defined?(:wait_until_not_full) : nil
  say.call('settings', *words, "waits_until_not_full=#{waits.inspect}")
end

# Where the files before this one would have Puma listen.
say_binds = lambda do |launcher|
  (launcher.options.file_options[:binds] || []).each { |bind| say.call('bind', bind[/\A[a-z]+/]) }
end

# These two act on nothing but the Puma that starts them.
harmless_plugins = %w[tmp_restart systemd]

say_plugins = lambda do |launcher|
  started = launcher.config.plugins.instance_variable_get(:@instances).map(&:class)
  known = Puma::Plugins.instance_variable_get(:@plugins)
  names = started.map { |plugin| known.key(plugin) || plugin.to_s }.uniq - harmless_plugins
  names.each { |name| say.call('plugin', name) }
end

# Blocks that Puma calls. These either format a line, are the app itself, or belong to a restart, which never comes.
not_called = %i[app log_formatter on_restart before_restart]

say_hooks = lambda do |launcher|
  events = launcher.events.instance_variable_get(:@hooks) || {}
  hooks = launcher.options.file_options.to_a + events.to_a
  of_puma = File.dirname(Puma.method(:stats).source_location.first)
  hooks.each do |name, values|
    next if not_called.include?(name)
    (values.is_a?(Array) ? values : [values]).each do |value|
      block = value.is_a?(Hash) ? value[:block] : value
      next unless block.is_a?(Proc) && block.source_location
      file, line = block.source_location
      next if file.start_with?("#{of_puma}/", "#{of_puma}.rb")
      # The name that the file has for it: Puma's own changed between its versions.
      written = File.foreach(file).first(line).last.to_s[/\w+/] if File.file?(file)
      say.call('hook', Puma::DSL.method_defined?(written.to_s) ? written : name, "#{file}:#{line}")
    end
  end
end

# What the files themselves do while they are read, as far as their text tells. What a hook does is not listed here, as the hook is.
acting_methods = {
  'File' => %w[write binwrite delete unlink rename symlink link truncate chmod chown mkfifo utime],
  'IO' => %w[write binwrite popen],
  'Dir' => %w[mkdir rmdir delete unlink],
  'Process' => %w[kill daemon spawn fork],
  'FileUtils' => %w[
    mkdir mkdir_p makedirs mkpath rmdir ln link ln_s symlink ln_sf ln_sr cp copy cp_r mv move rm remove rm_f safe_unlink rm_r
    rm_rf rmtree remove_dir remove_file remove_entry install chmod chmod_R chown chown_R touch
  ],
}
acting_words = %w[system spawn exec fork at_exit]
mode_that_writes = /\A(?:[wa]|r\+)/

say_acts = lambda do |files|
  require 'ripper'
  files.select { |file| File.file?(file) }.each do |file|
    act = ->(what, at) { say.call('act', what, "#{file}:#{at.first}") }
    constant = ->(node) { node.is_a?(Array) && %i[var_ref top_const_ref].include?(node[0]) ? node[1] : nil }
    literals = ->(node) { node.is_a?(Array) ? (node[0] == :@tstring_content ? [node[1]] : node.flat_map(&literals)) : [] }
    walk = lambda do |node|
      next unless node.is_a?(Array)
      case node[0]
      # What is not called where it stands.
      when :def, :defs, :lambda
        next
      when :method_add_block
        called = node[1]
        called = called[1] while called.is_a?(Array) && called[0] == :method_add_arg
        name = called.is_a?(Array) && %i[fcall command].include?(called[0]) ? called[1][1] : nil
        next if name && Puma::DSL.method_defined?(name) && !%w[single cluster inject].include?(name)
      when :call, :command_call
        receiver = constant.call(node[1])
        method = node[3]
        if receiver && method.is_a?(Array) && (acting_methods[receiver[1]] || []).include?(method[1])
          act.call("#{receiver[1]}.#{method[1]}", method[2])
        end
      when :method_add_arg
        receiver = node[1][0] == :call ? constant.call(node[1][1]) : nil
        method = node[1][3]
        if receiver && receiver[1] == 'File' && %w[open new].include?(method[1]) &&
           literals.call(node[2]).any? { |text| text.match?(mode_that_writes) && text.size < 5 }
          act.call("File.#{method[1]}", method[2])
        end
      when :fcall, :command, :vcall
        act.call(node[1][1], node[1][2]) if acting_words.include?(node[1][1])
      when :xstring_literal
        word = node.flatten.each_cons(3).find { |kind, _, _| kind == :@tstring_content }
        at = word && [node.flatten[node.flatten.index(:@tstring_content) + 2]]
        act.call('a command in backquotes', at) if at
      end
      node.each(&walk)
    end
    walk.call(Ripper.sexp(File.read(file)))
  end
end

# The sockets, threads and processes that the config files have started: Puma itself has started none yet.
say_begun = lambda do
  require 'socket'
  ObjectSpace.each_object(BasicSocket) do |socket|
    next if socket.closed? || !socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
    say.call('listens', socket.local_address.inspect_sockaddr)
  end
  # Ruby's timeout library has a thread of its own.
  threads = (Thread.list - [Thread.current]).map(&:inspect).reject { |thread| thread.include?('/timeout.rb:') }
  say.call('threads') if threads.any?
  say.call('children') if begin
    Process.wait(-1, Process::WNOHANG)
    true
  rescue Errno::ECHILD
    false
  end
end

Puma::CLI.prepend(Module.new do
  define_method(:run) do
    if longtail_asks
      say_begun.call
      say_plugins.call(launcher)
      say_hooks.call(launcher)
      say_acts.call(read)
      say_binds.call(launcher)
      say_settings.call(launcher.options)
      $stdout.flush
      exit!(0)
    end
    keep_apart.call(launcher)
    super()
  end
end)
