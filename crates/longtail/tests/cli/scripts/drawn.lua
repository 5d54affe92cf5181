request = function()
  return wrk.format("GET", "/posts/" .. math.random(1, 500))
end
function delay() return pause() end
