package endtoend

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// output is what a command left behind.
type output struct {
	code           int
	stdout, stderr string
}

func command(t testing.TB, args ...string) output {
	t.Helper()
	return commandReading(t, "", args...)
}

// commandReading is command with standard input.
func commandReading(t testing.TB, stdin string, args ...string) output {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	require.False(t, err != nil && (!errors.As(err, &exit) || ctx.Err() != nil), "troupe %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	return output{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wantCommand runs a command that must do its work, and returns what it printed.
func wantCommand(t testing.TB, args ...string) string {
	t.Helper()
	out := command(t, args...)
	require.Zero(t, out.code, "troupe %s: got exit code, %s, %s", strings.Join(args, " "), out.stdout, out.stderr)
	return out.stdout
}

func (h *home) token(user string, args ...string) string {
	h.t.Helper()
	return h.secret("token", user, args...)
}

func (h *home) session(user string) string {
	h.t.Helper()
	return h.secret("session", user)
}

// secret demands the secret, alone, on standard output (cmd/troupe/HOME.md,
// "Exit codes and output").
func (h *home) secret(kind, user string, args ...string) string {
	h.t.Helper()
	out := wantCommand(h.t, append([]string{kind, "create", "--home", h.dir, "--user", user}, args...)...)
	secret, found := strings.CutSuffix(out, "\n")
	require.True(h.t, found && !strings.ContainsAny(secret, " \n\t") && len(secret) >= 43, "troupe %s create: got %q, want a secret and a line end", kind, out)
	return secret
}
