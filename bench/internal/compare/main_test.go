package compare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/bench/internal/harness"
)

// TestMain makes this test binary a ceiling when it is started as one: compare starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != ceilingCommand {
		goleak.VerifyTestMain(m)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serveCeiling(ctx, harness.New(ceilingCommand, os.Args[2:], io.Discard, os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func planOf(args ...string) (*plan, error) {
	return parsePlan(harness.New("compare", args, io.Discard, io.Discard))
}

// TestARunLeavesARecordAndNothingElse starts both ceilings as processes. The load
// generator accepts their answers of whatever kinds it drew: an error is a failure.
func TestARunLeavesARecordAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	record := filepath.Join(t.TempDir(), "record.md")
	var out, errs bytes.Buffer
	err := Commands[0].Main(t.Context(), []string{
		"-targets", "http,durable", "-rounds", "2", "-duration", "100ms", "-warmup", "10ms", "-connections", "2,4",
		"-instances", "8", "-replies", "full,minimal", "-mix", "create=1,event=8,read=1", "-o", record,
	}, &out, &errs)
	require.NoError(t, err, errs.String())
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	for _, part := range []string{
		"| Command | `go run ./bench compare -targets http,durable", "| Commit |", "| Machine |", "go1.", "| Write and sync of 4 KiB | p50 ",
		"## 2 connections, minimal replies", "## 4 connections", "| durable |", "1.00–1.00–1.00", "| http | create | ", "| durable | read | ",
	} {
		assert.Contains(t, string(text), part, "the record lacks")
	}
	assert.True(t, strings.HasSuffix(string(text), out.String()), "the record does not end with what was printed")
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

func TestAPlanHasACellForEachCombination(t *testing.T) {
	p, err := planOf("-connections", "16,64", "-replies", "full,minimal", "-batch", "100,1000", "-against", "x")
	require.NoError(t, err)
	want := []cell{
		{16, false, 0},
		{16, true, 0},
		{16, true, 100},
		{16, true, 1000},
		{64, false, 0},
		{64, true, 0},
		{64, true, 100},
		{64, true, 1000},
	}
	assert.Equal(t, want, p.cells)
	assert.Equal(t, []string{"http", "durable", "troupe", "other"}, p.targets)
	_, err = planOf("-mix", "event=9,query=1")
	assert.ErrorIs(t, err, harness.ErrUsage, "queries to the ceilings")
}
