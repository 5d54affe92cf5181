request = function()
  if math.random() < 0.8 then
    return wrk.format("GET", "/posts")
  else
    wrk.method = "POST"
    return wrk.format("POST", "/search", nil, "q=1")
  end
end
