# Loaded before Puma (ruby -r): prints what Puma's launcher has made of config file, environment and flags, and ends before anything is
# bound. longtail reads the line (settings.rs).
module LongtailSettings
  def run
    options = launcher.options
    pool = defined?(Puma::ThreadPool) ? Puma::ThreadPool.method_defined?(:wait_until_not_full) : nil
    names = %i[max_fast_inline queue_requests enable_keep_alives wait_for_less_busy_worker]
    words = names.map { |name| [name, options[name]] }.to_h.merge(waits_until_not_full: pool)
    $stdout.write("\nlongtail-settings " + words.map { |name, value| "#{name}=#{value.inspect}" }.join(' ') + "\n")
    $stdout.flush
    exit!(0)
  end
end
name = Module.instance_method(:name)
trace = TracePoint.new(:end) do |point|
  next unless name.bind(point.self).call == 'Puma::CLI'
  trace.disable
  point.self.prepend(LongtailSettings)
end
trace.enable
