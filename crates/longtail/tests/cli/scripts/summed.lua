local paths = {"/a", "/b", "/c"}
local weights = {70, 20, 10}
local total = 0
for _, w in ipairs(weights) do total = total + w end
request = function()
  local r = math.random(total)
  local sum = 0
  for i, w in ipairs(weights) do
    sum = sum + w
    if r <= sum then
      return wrk.format("GET", paths[i])
    end
  end
end
