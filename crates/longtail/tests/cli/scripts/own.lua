local body = 'a=1'
wrk.method = 'POST'
wrk.body = body
request = function() return wrk.request() end
