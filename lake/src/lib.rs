//! Data sets for the demo, the tests and the benchmark: TPC-H and redbi.
