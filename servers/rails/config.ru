# frozen_string_literal: true

# A Rails app that sleeps for as long as it is asked to: `GET /sleep?ms=1000` answers `ok` after a second.
#
#   puma -t5:5 -b tcp://127.0.0.1:3000 servers/rails/config.ru
#
# Production is the only environment it has.

ENV['RAILS_ENV'] ||= 'production'

require_relative 'config/application'

Rails.application.initialize!

run Rails.application
