request = function()
  local id = math.random(1, 10000)
  return wrk.format("GET", "/products/" .. id)
end
