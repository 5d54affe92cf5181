request = function() return 'GET / HTTP/1.1' end
