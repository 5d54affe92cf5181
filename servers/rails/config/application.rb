# frozen_string_literal: true

# All settings, for Rails 6.1 and later. Only the parts of Rails are loaded that an API without a database needs, so the
# railties gem (Debian: ruby-railties) and what it depends on are enough.

# Before Rails: 6.1 and 7.0 take it for loaded, and concurrent-ruby 1.3.5 and later no longer loads it.
require 'logger'
require 'securerandom'

begin
  require 'action_controller/railtie'
rescue LoadError => error
  # longtail looks for these first words.
  abort "Rails is not installed (#{error.message}): apt-get install ruby-railties, or gem install rails, " \
        'or add it to the Gemfile'
end

# Nothing here is signed or encrypted, but Rails wants a secret in production.
ENV['SECRET_KEY_BASE'] = SecureRandom.hex(64) if ENV['SECRET_KEY_BASE'].to_s.empty?

class SleepApp < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.api_only = true

  # What config/environments/production.rb says elsewhere: load everything before the first request, nothing twice.
  config.cache_classes = true
  config.eager_load = true
  config.consider_all_requests_local = false
  config.public_file_server.enabled = false

  # A line for each request would be measured too. What goes wrong is said in the answer.
  config.logger = ActiveSupport::Logger.new(nil)
  config.log_level = :unknown
  config.exceptions_app = lambda { |env|
    headers = { 'content-type' => 'text/plain', 'x-worker-pid' => Process.pid.to_s }
    message = env['action_dispatch.exception'].message.scrub.lines.first.to_s.chomp
    # Rails asks for the page of the status: /400.
    [env['PATH_INFO'].delete('/').to_i, headers, ["#{message}\n"]]
  }
end
