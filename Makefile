# make demo | check | test | soak | promise | results | dist | package | wheel | web | bench | pictures | docs. Nothing is needed beside
# cargo, make and bash, for the pictures a browser, for the page of web/ the compiler's target, for the packages cargo-deb, and for the
# wheel and the site of docs/ Python.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo check test soak promise scoreboard results dist package wheel web bench pictures docs

SEED ?= 1
PAPERS ?= imc csws ton stms ecf
PLAIT := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/release/plait
DATA := $(if $(PLAIT_DATA),$(PLAIT_DATA),../shared/data)
WIFI := wifi:rate=20mbit,rtt=22ms,queue=60kB,loss=0.1%
LTE := lte:rate=10mbit,rtt=60ms,jitter=10ms,queue=300kB
DEMO := --path $(WIFI) --path $(LTE) --workload download:2MB

help: ## what can be made
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: ## every scheduler over WiFi and LTE, beside plain TCP on each (SEED=n)
	@cargo build --release --quiet -p plait-cli
	@$(PLAIT) compare $(DEMO) --seed $(SEED)
	@echo
	@echo "Next:"
	@echo "  $(PLAIT) run $(DEMO) --seed $(SEED)"
	@if [ -f "$(DATA)/traces/pair_7_1_wifi.csv" ]; then \
	  echo "  $(PLAIT) compare --path wifi:rtt=30ms,trace=$(DATA)/traces/pair_7_1_wifi.csv --path lte:rtt=60ms,trace=$(DATA)/traces/pair_7_1_cellular.csv --workload download:2MB"; \
	  echo "  $(PLAIT) trace show $(DATA)/traces/pair_7_1_cellular.csv"; \
	fi
	@echo "  $(PLAIT) list schedulers"

check: ## format, lints, and the tests of the crates that changed since the last commit (BASE=COMMIT for another)
	@BASE="$(BASE)" tests/check

test: ## format, lints, documentation, floors, every test
	@tests/run

soak: ## the long versions of the randomised tests, part by part (optimised build; about an hour, PARTS="sched fuzz" for some)
	@tests/soak

promise: ## docs/promise.md: every scheduler against the best path alone (recorded links: PLAIT_DATA)
	@cargo build --release --quiet -p plait-cli
	@PLAIT_DATA=$(DATA) $(PLAIT) scoreboard --format markdown --output docs/promise.md

scoreboard: ## docs/scoreboard.md: the usual schedulers in 2000 random cells
	@cargo build --release --quiet -p plait-cli
	@$(PLAIT) scoreboard --random 2000 --seed 600001 --format markdown --output docs/scoreboard.md

results: ## docs/results/PAPER.md: every experiment of the papers, judged with six seeds (hours; PAPERS="imc ton" for some)
	@cargo build --release --quiet -p plait-cli
	@for paper in $(PAPERS); do \
	  page=docs/results/$$paper.md; echo "$$page"; \
	  { echo "# Results of the claims: $$paper"; echo; \
	    echo "After this page you know which claims of the paper hold here. A line of the table has a claim of the paper, the result here with"; \
	    echo "its 95 % interval, and the verdict: the claim holds, fails or is undecided. A \`miss\` fails for a known cause, which"; \
	    echo "[misses.md](misses.md) explains. \`make results PAPERS=$$paper\` measures everything again with the present version, which takes hours."; echo; \
	    echo "Written by \`make results PAPERS=$$paper\` on $$(date -u +%F), $$(uname -sm), $$(sed -n 's/^model name.*: //p' /proc/cpuinfo 2>/dev/null | head -n 1), $$(nproc) cores."; echo; \
	    $(PLAIT) reproduce $$paper --full --again 5 --format markdown; } > $$page.new || test $$? -eq 1; \
	  mv $$page.new $$page; \
	done

dist: ## the binary to ship, target/dist/plait: its bytes depend on the commit and the compiler alone
	@contrib/dist

package: ## static binary, Debian package, container recipe, dashboard and SBOM in target/package, built twice and compared (docs/packages.md)
	@contrib/package/release

wheel: ## the Python package, dist/plait-*.whl (needs python3, and a network the first time)
	@PYTHON=$(or $(PYTHON),python3) python/wheel

web: ## the race of schedulers as one page, target/web/race.html (needs the target wasm32-unknown-unknown; tests/web tests it)
	@web/build

bench: ## benchmarks
	@cargo bench --workspace

pictures: ## the pictures of docs/ (needs chromium)
	@cargo build --release --quiet -p plait-cli
	@docs/pictures $(PLAIT)

docs: ## the documentation as a site with search, in target/site (needs python3, and a network the first time)
	@PYTHON=$(or $(PYTHON),python3) docs/site/build
