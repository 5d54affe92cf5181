request = function()
  local body = string.format('{"id": %d}', math.random(1, 9))
  return wrk.format("POST", "/a", nil, body)
end
