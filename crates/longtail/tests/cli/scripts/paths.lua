init = function(args) paths = args end
