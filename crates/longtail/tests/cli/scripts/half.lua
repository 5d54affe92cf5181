wrk.path = "/half"
wrk.method = "PUT"
wrk.body = 'a=' .. n
wrk.headers['A'] = os.time()
