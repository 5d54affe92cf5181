local n = 0
request = function()
  n = n + 1
  return (n % 10 == 0) and wrk.format("POST", "/buy") or wrk.format("GET", "/")
end
