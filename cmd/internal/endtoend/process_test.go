package endtoend

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestOtherProcessSecrets looks for secrets in everything that the program
// writes: its store and its log (persistence/PROMISES.md, "P21").
func TestOtherProcessSecrets(t *testing.T) {
	p := start(t, newHome(t, flows()), "--log-level", "debug")
	token, session := p.home.token("ann"), p.home.session("ann")
	const planted = "planted-private-text"
	cookie := p.user("Cookie: session=" + session)
	cookie.Create(t, "plain", "").Record(t)
	r := p.as(token).Create(t, "plain", `{"svcPrivate":{"x":"`+planted+`"}}`).Record(t)
	p.as(token).Event(t, "plain", r.ID, "note", `{"svcPrivate":{"y":"`+planted+`"}}`).Record(t)
	p.as(token[:len(token)-1]+"~").Get(t, wiretest.Root+"/choices").WantStatus(t, 401)
	p.as(token).Get(t, wiretest.Root+"/instances/plain?filter="+url.QueryEscape(`{"svcPublic.x":"`+planted+`"}`)).WantStatus(t, 200)
	p.stop()
	for _, secret := range []string{secretPart(token), secretPart(session), planted} {
		assert.NotContains(t, p.log.all(), secret, "the log holds")
	}
	found := false
	err := fs.WalkDir(os.DirFS(p.home.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(p.home.dir, name))
		for _, secret := range []string{secretPart(token), secretPart(session)} {
			assert.False(t, bytes.Contains(text, []byte(secret)), "%s holds a secret", name)
		}
		found = found || bytes.Contains(text, []byte(planted))
		return err
	})
	require.NoError(t, err)
	if !found { // the control: the scan sees what is stored as it is
		t.Error("the scan does not even see what the instance holds")
	}
}

func secretPart(credential string) string {
	_, secret, _ := strings.Cut(credential, ".")
	return secret
}
