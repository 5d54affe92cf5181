request = function()
  return wrk.format("GET", string.format("/users/%d?x=%s", math.random(1, 100), math.random(5)))
end
