request = function()
  if next_kind() == "write" then return wrk.format("POST", "/buy") end
  return wrk.format("GET", "/")
end
