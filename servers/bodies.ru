# frozen_string_literal: true

# The app that `longtail bodies` starts: one response in four kinds of Rack body, of any size, right to the byte.
#
#   GET /s10           10 kB (10240 bytes) as one string
#   GET /a10           as an array of strings of 1 kB
#   GET /c10           as an enumerator of strings of 1 kB, without a Content-Length: Puma sends it in chunks
#   GET /i10           as an open file
#   GET /ledger        what this process has answered so far, in the header x-body-ledger: "<pid> <answers> <bytes>"
#   GET anything else  a short text
#
# Puma's own words work too: the header `Body-Conf: s10` in place of the path, and `Dly: 0.01`, which sleeps so long
# first. Each response carries the process id of the worker that made it.
#
# Files are made when they are first asked for, in the folder that LONGTAIL_BODIES_FOLDER names (longtail removes it,
# however it ends), else in a folder of this app's own, which goes when the server ends.
#
# For Puma 3 to 8 on Ruby 2.5 and later, with Rack 2, Rack 3 or no rack gem at all: header names are in lower case and
# each has one value, as Rack 3 wants them and Rack 2 allows.

require 'fileutils'
require 'tmpdir'

KIND_AND_SIZE = /\A([acsi])(\d{1,6})\z/.freeze

# 1 kB, with a line end at its end: a server that sends a file line by line sends pieces of 1 kB as well.
KILOBYTE = "#{'longtail '.ljust(1023, '0123456789abcdef')}\n".freeze

# What an app behind a browser sends with a page: 20 headers, always as long.
HEADERS = {
  'content-type' => 'text/html; charset=utf-8',
  'cache-control' => 'max-age=0, private, must-revalidate',
  'content-security-policy' => "default-src 'self'; img-src 'self' https: data:; object-src 'none'; " \
                               "script-src 'self' 'nonce-2726c7f26c0d5e6a'; style-src 'self' 'unsafe-inline'; " \
                               "frame-ancestors 'none'; base-uri 'self'; form-action 'self'",
  'cross-origin-opener-policy' => 'same-origin',
  'etag' => 'W/"33a64df551425fcc55e4d42a148795d9f25f89d4"',
  'last-modified' => 'Tue, 14 Jun 2022 01:21:55 GMT',
  'link' => '</assets/application-4f0a2c6a.css>; rel=preload; as=style; nopush, ' \
            '</assets/application-0b9a5f27.js>; rel=preload; as=script; nopush',
  'permissions-policy' => 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy' => 'strict-origin-when-cross-origin',
  'server-timing' => 'start_processing.action_controller;dur=0.11, sql.active_record;dur=4.02, ' \
                     'render_template.action_view;dur=9.35, process_action.action_controller;dur=14.87',
  'set-cookie' => '_longtail_session=eyJzZXNzaW9uX2lkIjoiOGQ1ZTk3YzQ0ZjY0YTA4YjEyZWQ2MTBiZTg4NDRmMTEiLCJfY3NyZl90b2tl' \
                  'biI6Ik5ES2tpZz09In0--5f1c2b6a7d8e90; path=/; HttpOnly; SameSite=Lax',
  'strict-transport-security' => 'max-age=63072000; includeSubDomains',
  'vary' => 'Accept, Accept-Encoding, Origin',
  'x-content-type-options' => 'nosniff',
  'x-download-options' => 'noopen',
  'x-frame-options' => 'SAMEORIGIN',
  'x-permitted-cross-domain-policies' => 'none',
  'x-request-id' => '6e2c1a90-9f5b-4d1e-a5f1-0c2a7d8b3e44',
  'x-runtime' => '0.015432',
  'x-xss-protection' => '0'
}.freeze

# What this process has handed to the server: whole responses, and the bytes of their bodies.
class Account
  def initialize
    @lock = Mutex.new
    @answers = 0
    @bytes = 0
  end

  def add(bytes)
    @lock.synchronize do
      @answers += 1
      @bytes += bytes
    end
  end

  def to_s
    @lock.synchronize { "#{Process.pid} #{@answers} #{@bytes}" }
  end
end

# The files of the kind i, one for each size.
class Files
  def initialize
    given = ENV['LONGTAIL_BODIES_FOLDER']
    @folder = given || Dir.mktmpdir('bodies')
    # The app may be loaded before the workers are forked: the folder is removed by the process that made it.
    owner = Process.pid
    at_exit { FileUtils.remove_entry(@folder) if owner == Process.pid } unless given
  end

  def open(kilobytes)
    path = File.join(@folder, "#{kilobytes}.html")
    make(path, kilobytes) unless File.exist?(path)
    File.open(path, 'rb')
  end

  private

  # Several workers may do it at once: whoever renames last replaces a whole file by one that is the same.
  def make(path, kilobytes)
    FileUtils.mkdir_p(@folder)
    unfinished = "#{path}.#{Process.pid}.#{Thread.current.object_id}"
    File.open(unfinished, 'wb') { |file| kilobytes.times { file.write(KILOBYTE) } }
    File.rename(unfinished, path)
  end
end

ACCOUNT = Account.new
FILES = Files.new
# One string for each size, made when it is first asked for.
STRINGS = Hash.new { |strings, kilobytes| strings[kilobytes] = (KILOBYTE * kilobytes).freeze }

def body_of(kind, kilobytes)
  case kind
  when 'a' then Array.new(kilobytes, KILOBYTE)
  when 's' then [STRINGS[kilobytes]]
  when 'i' then FILES.open(kilobytes)
  else Enumerator.new { |chunks| kilobytes.times { chunks << KILOBYTE } }
  end
end

run lambda { |env|
  delay = env['HTTP_DLY']
  # While it sleeps the thread is taken but the lock of the Ruby VM is not: this is a request that waits for a database.
  sleep(delay.to_f) if delay

  path = env['PATH_INFO'].delete_prefix('/')
  # Asked anew for each request: with preload_app! this file is read before the workers are forked.
  headers = { 'x-worker-pid' => Process.pid.to_s }
  _, kind, size = *KIND_AND_SIZE.match(env['HTTP_BODY_CONF'] || path)
  if kind
    bytes = size.to_i * KILOBYTE.bytesize
    headers.update(HEADERS)
    headers['content-length'] = bytes.to_s unless kind == 'c'
    # The answer to HEAD has no body.
    next [200, headers, []] if env['REQUEST_METHOD'] == 'HEAD'

    ACCOUNT.add(bytes)
    [200, headers, body_of(kind, size.to_i)]
  else
    headers['content-type'] = 'text/plain'
    headers['x-body-ledger'] = ACCOUNT.to_s if path == 'ledger'
    text = "GET /s10 is 10 kB as a string; a: an array, c: chunks, i: a file\n"
    headers['content-length'] = text.bytesize.to_s
    [200, headers, env['REQUEST_METHOD'] == 'HEAD' ? [] : [text]]
  end
}
