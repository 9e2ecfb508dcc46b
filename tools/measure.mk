# Measurements beside `make bench`.

bench-profile: profile $(VENV)/.dev ## the same of a build with a profile, as wheels have it
	$(PY) benches/bench.py

bench-peers: setup $(VENV)/.dev ## the same scenarios in ns-2, ns-3 and htsim (HTSIM=its folder sim), where they are installed
	$(PY) benches/bench.py --peers

compare-ns3: dev ## redtail beside ns-3, where it is installed: agreement, then each difference
	$(PY) benches/peers/compare_ns3.py
	$(PY) benches/peers/compare_ns3.py --differences
