# frozen_string_literal: true

# The gem. bin/dist builds it once for each platform, from a folder that has the binary in libexec,
# and once for platform "ruby" without one: else a Gemfile that has longtail would not resolve on a
# colleague's Mac.
Gem::Specification.new do |spec|
  spec.name = "longtail"
  spec.version = ENV.fetch("LONGTAIL_VERSION")
  spec.platform = ENV.fetch("LONGTAIL_GEM_PLATFORM")
  spec.authors = ["The longtail authors"]
  spec.summary = "How long do requests wait when a web server is busy, and can you trust the number?"
  spec.description = <<~TEXT.tr("\n", " ").strip
    A load generator and diagnosis tool for Puma and other HTTP/1.1 servers. It drives a server past
    what it can do, says who waits and why, and measures its own limit first. This gem carries a
    static binary for Linux.
  TEXT
  spec.licenses = ["MIT", "Apache-2.0"]
  spec.required_ruby_version = ">= 2.7"
  spec.files = Dir["exe/*", "libexec/*", "LICENSE-*", "README.md", "THIRD-PARTY-LICENSES"].sort
  spec.bindir = "exe"
  spec.executables = ["longtail"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
