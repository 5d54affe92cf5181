wrk.method = "POST"
request = function() return wrk.format() end
