# frozen_string_literal: true

# A Rails app that sleeps for as long as it is asked to: `GET /sleep?ms=1000` answers `ok` after a second.
#
#   puma -t5:5 -b tcp://127.0.0.1:3000 servers/rails/config.ru
#
# Production is the only environment it has.

ENV['RAILS_ENV'] ||= 'production'

require_relative 'config/application'

Rails.application.initialize!

# Says when the app began and ended, to a client that asks for it: nanoseconds of CLOCK_MONOTONIC.
class AppStamps
  def initialize(app)
    @app = app
  end

  def call(env)
    return @app.call(env) unless env['HTTP_X_APP_STAMPS']

    started = now
    status, headers, body = @app.call(env)
    headers['x-app-stamps'] = "#{started} #{now}"
    [status, headers, body]
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

use AppStamps
run Rails.application
