package compare

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"troupe/bench/internal/harness"
)

// asPeer is a variable of the environment of a process that is a peer.
const asPeer = "COMPARE_TEST_PEER"

// servePeer is a ceiling behind the arguments of a peer; it demands its folder.
func servePeer(ctx context.Context, args []string) error {
	if len(args) != 4 || args[0] != "--dir" || args[2] != "--listen" {
		return fmt.Errorf("unexpected %q", args)
	}
	if _, err := os.Stat(args[1]); err != nil {
		return err
	}
	return serveCeiling(ctx, harness.New(ceilingCommand, append(args[2:], "-admin", "127.0.0.1:0"), io.Discard, os.Stderr))
}

// TestAPeerIsATargetLikeTheOthers starts this test binary as the program of a peer, and lets a
// sample of troupe stand beside it: it is 100 times as fast.
func TestAPeerIsATargetLikeTheOthers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	t.Setenv(asPeer, "1")
	p, err := planOf(t, []string{"-peer", "slow=" + self, "-rounds", "1", "-warmup", "10ms", "-connections", "2", "-instances", "8"})
	if err != nil {
		t.Fatal(err)
	}
	p.targets = []string{"slow"}
	all, stop, err := p.startTargets(t.Context())
	defer stop()
	if err != nil {
		t.Fatal(err)
	}
	var samples []*sample
	for _, p.load.Duration = range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} { // a machine may stand still for a while
		samples, err = p.measure(t.Context(), all)
		if err != nil || len(samples) != 1 || samples[0].result.Failed() > 0 {
			t.Fatalf("got %d samples, %v", len(samples), err)
		}
		if samples[0].result.PerSecond > 0 {
			break
		}
	}
	ours := *samples[0]
	result := *ours.result
	ours.target, ours.result = troupeTarget, &result
	result.PerSecond *= 100
	p.targets = []string{troupeTarget, "slow"}
	if text := p.report(append(samples, &ours)); !strings.Contains(text, "| slow | 100.0–100.0–100.0 |") {
		t.Errorf("the report does not say how many times as fast troupe is:\n%s", text)
	}
}
