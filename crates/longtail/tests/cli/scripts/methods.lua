math.randomseed(os.time())
local methods = {"GET", "POST"}
request = function()
  local method = "GET"
  local body = nil
  if math.random() < 0.3 then
    method = "POST"
    body = '{"a":1}'
  end
  return wrk.format(method, "/x", nil, body)
end
