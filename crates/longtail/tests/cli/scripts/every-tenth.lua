local counter = 0
request = function()
  counter = counter + 1
  if counter % 10 == 0 then
    return wrk.format("POST", "/w", nil, "id=" .. counter)
  end
  return wrk.format("GET", "/r/" .. counter)
end
