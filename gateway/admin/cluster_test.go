package admin

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// elsewhere are the identities of a node that has not come to lead yet.
type elsewhere struct {
	identity.Identities
	led bool
}

func (e *elsewhere) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error) {
	if !e.led {
		return "", identity.Credential{}, failure.Elsewhere(0)
	}
	return e.Identities.Create(ctx, kind, c)
}

// TestALeaderThatIsGone: nothing was sent to it, so the command waits for the next one.
func TestALeaderThatIsGone(t *testing.T) {
	path, identities := filepath.Join(t.TempDir(), "admin.sock"), &elsewhere{Identities: openIdentities(t)}
	tries := 0
	s, err := Start(Options{Path: path, Identities: identities, Leader: func(*http.Request) (*http.Response, error) {
		tries++
		if tries == 1 {
			return nil, failure.Elsewhere(0)
		}
		identities.led = true
		return nil, nil
	}})
	require.NoError(t, err)
	defer stop(t, s)
	c, err := Dial(t.Context(), path)
	require.NoError(t, err)
	secret, _, err := c.Create(t.Context(), identity.Token, identity.CreateCredential{User: "john.doe"})
	assert.True(t, err == nil && secret != "" && tries == 2, "got %v after %d tries, want a token after two", err, tries)
}
