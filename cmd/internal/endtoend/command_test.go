package endtoend

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wantCommand runs a command that must do its work, and returns what it printed.
func wantCommand(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "troupe %s\n%s%s", strings.Join(args, " "), &stdout, &stderr)
	return stdout.String()
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
