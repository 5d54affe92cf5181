# frozen_string_literal: true

# The app that `longtail sweep` starts when no rackup is given: it holds a thread for as long as it is asked to.
#
#   GET /sleep0.2      sleeps 0.2 s, then answers
#   GET anything else  answers at once
#
# The answer to a request with the header `x-app-stamps` says when the app began and ended, in nanoseconds of CLOCK_MONOTONIC, so that a
# client on the same machine knows where the time went. Other responses are as they always were.
#
# With LONGTAIL_STATSD=127.0.0.1:8125 in its environment it sends what each request took to that address, as statsd's timing in a UDP
# packet, so that `longtail compare` can measure what such an instrument costs.
#
# Each response carries the process id of the worker that made it, so that a client can count the requests of each worker
# exactly, without asking the server.
#
# For Puma 3 to 8 on Ruby 2.5 and later, with Rack 2, Rack 3 or no rack gem at all: nothing is required here, and header
# names are in lower case, as Rack 3 wants them and Rack 2 allows.

# The whole path, so that `/sleepy` and `/sleep1/x` are "anything else".
SLEEP = %r{\A/sleep(\d+(?:\.\d+)?|\.\d+)\z}.freeze

app = lambda { |env|
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) if env['HTTP_X_APP_STAMPS']
  seconds = env['PATH_INFO'][SLEEP, 1]
  # While it sleeps the thread is taken but the lock of the Ruby VM is not: this is a request that waits for a database.
  sleep(seconds.to_f) if seconds

  # Asked anew for each request: with preload_app! this file is read before the workers are forked.
  headers = { 'content-type' => 'text/plain', 'x-worker-pid' => Process.pid.to_s }
  text = seconds ? "slept #{seconds} s\n" : "did not sleep\n"
  if started
    headers['x-app-stamps'] = "#{started} #{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}"
  end
  # The answer to HEAD has no body.
  [200, headers, env['REQUEST_METHOD'] == 'HEAD' ? [] : [text]]
}

if (statsd = ENV['LONGTAIL_STATSD'])
  # Puma has it already.
  require 'socket'
  host, port = statsd.split(':')
  packets = UDPSocket.new
  packets.connect(host, Integer(port))
  bare = app
  app = lambda { |env|
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    answer = bare.call(env)
    took = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1000
    begin
      packets.send(format('longtail.rack.request:%.3f|ms', took), 0)
    rescue SystemCallError
      # Nobody listens: that is no trouble of the request.
    end
    answer
  }
end

run app
