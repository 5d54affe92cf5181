# What an app itself saw of a load: a witness that longtail has no part in.
#
# `run witnessed { ... }` runs the block for each request. Each process writes witness.PID.json into
# its folder when it ends:
#   requests   all requests that it served
#   most       the most that were in the app at once
#   inside     how many were in the app on average, in the fullest two seconds
#   rate       how many ended per second, in the busiest two seconds

require 'json'

SPANS = []
SPANS_LOCK = Mutex.new
WINDOW = 2.0
FOLDER = Dir.pwd

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def witnessed
  lambda do |env|
    from = now
    response = yield env
    SPANS_LOCK.synchronize { SPANS << [from, now] }
    response.is_a?(Array) ? response : [200, { 'content-type' => 'text/plain' }, ['ok']]
  end
end

# The most spans that overlap at any moment.
def most_at_once
  inside = 0
  most = 0
  changes = SPANS.flat_map { |from, to| [[to, -1], [from, 1]] }
  changes.sort.each do |_, change|
    inside += change
    most = [most, inside].max
  end
  most
end

# For each window (one starts every half window): the seconds that requests spent inside, and the
# requests that ended.
def windows
  all = Hash.new { |hash, key| hash[key] = [0.0, 0] }
  half = WINDOW / 2
  SPANS.each do |from, to|
    ((from / half).floor - 1..(to / half).floor).each do |number|
      start = number * half
      all[number][0] += [[to, start + WINDOW].min - [from, start].max, 0].max
      all[number][1] += 1 if to >= start && to < start + WINDOW
    end
  end
  all.values
end

at_exit do
  unless SPANS.empty?
    inside = windows.map(&:first).max / WINDOW
    rate = windows.map(&:last).max / WINDOW
    seen = { requests: SPANS.size, most: most_at_once, inside: inside, rate: rate }
    File.write(File.join(FOLDER, "witness.#{Process.pid}.json"), JSON.generate(seen))
  end
end
