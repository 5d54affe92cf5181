//! What other generators print, for those who read it.

/// What wrk printed of ten connections and a server of a millisecond.
pub const WRK: &str = "\
Running 1s test @ http://127.0.0.1:1/
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms   10.00us   2.00ms   99.00%
    Req/Sec    10.00k    10.00    10.01k    99.00%
  Latency Distribution
     50%    1.00ms
     75%    1.00ms
     90%    1.00ms
     99%    1.50ms
  10000 requests in 1.00s, 1.00MB read
Requests/sec:  10000.00
Transfer/sec:      1.00MB
";
