//! Client's ledger = server's ledger, requests and bytes both ways: every stop rule, every pace, every transport.
