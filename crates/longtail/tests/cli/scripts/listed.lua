function load(file)
  local lines = {}
  for line in io.lines(file) do
    lines[#lines + 1] = line
  end
  return lines
end
paths = load("paths.txt")
counter = 0
request = function()
  counter = counter % #paths + 1
  return wrk.format(nil, paths[counter])
end
