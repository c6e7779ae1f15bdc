# Shortcuts. `make help` lists them; .ci/run is what must hold before a change lands.

.DEFAULT_GOAL := help
# Nothing here needs a C compiler, and a fifth of the first build would be C.
export CGO_ENABLED := 0
.PHONY: help build test race lint format fuzz random bench peers overload layers kill cluster crash simulate vulnerabilities pages ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program: ./troupe
	go build -o troupe ./cmd/troupe

test: ## run all tests
	go test ./...

race: ## run all tests under the race detector
	CGO_ENABLED=1 go test -race ./... # the race detector is C

lint: ## check the format, vet and lint
	@tools=$$(.ci/tools) && test -z "$$($$tools/gofumpt -l . | tee /dev/stderr)" && go vet ./... && $$tools/golangci-lint run ./...

format: ## format all Go files
	@$$(.ci/tools)/gofumpt -w .

fuzz: ## run every fuzz target for 30 s
	.ci/fuzz 30

random: ## run all property tests with other seeds, 10 minutes
	.ci/random

bench: ## measure the program beside the two ceilings, 64 connections
	go run ./bench compare -replies full,minimal

peers: ## measure an order beside Restate, DBOS and Temporal, 11 minutes
	go -C bench/peers run .

overload: ## offer more than the program can do, and show what it still does
	go run ./bench overload

layers: ## run the benchmarks of all layers
	go test -run '^$$' -bench . -benchmem ./...

kill: ## kill servers under load and look for lost answers
	.ci/kill

cluster: ## hurt a cluster of three processes 1,000 times, in every way; takes root and hours
	TROUPE_TEST_SEED=$$(date +%s) go test -count=1 -timeout 0 -v -run '^TestAClusterUnderFaults$$' ./cmd/internal/endtoend -episodes 1000 -workers 32 -check 60 -kinds kill,pause,stop,two,all,replace,cut,mute,deaf,bridge,split,flap,disk

crash: ## cut the power at every write and sync of a script of requests, and tear every write
	go test -count=1 -v -run TestNoCrashShowsThroughHTTP ./gateway -every-cut

simulate: ## lose power and links of three stores in memory, 6,000 rounds of faults
	go test -count=1 -timeout 0 -v -run TestNothingIsLostUnderFaults ./persistence/replica/replicatest -seeds 250 -first-seed 1000

vulnerabilities: ## look for known vulnerabilities with the database that GOVULNDB names
	.ci/vulnerabilities

pages: ## build the web pages into the tree
	.ci/console -update

ci: ## everything that must hold before a change lands
	.ci/run
