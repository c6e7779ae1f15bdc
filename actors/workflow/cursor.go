package workflow

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"troupe/persistence"
)

// A cursor is a place in a list, encrypted, so that it tells nothing, cannot be
// made up, and fits only the list that it was made for. The key is the store's:
// cursors stay valid over a restart.

// place is where a page ended: behind the instance id, whose value in the index
// that sorts is value (nil when _id sorts).
type place struct {
	value []byte
	id    persistence.ID
}

const (
	cursorFormat  = 1
	cursorKeySize = 32
	// cursorSetting is the name under which the key is kept.
	cursorSetting = "cursor-key"
)

// openCursors reads the store's key for cursors, and makes it the first time.
func openCursors(store *persistence.Store) (cipher.AEAD, error) {
	name := persistence.SettingKey(nil, cursorSetting)
	key, err := store.Load(name)
	if errors.Is(err, persistence.ErrNotFound) {
		key = make([]byte, cursorKeySize)
		_, _ = rand.Read(key) // crypto/rand never returns an error; it ends the program
		w := store.NewWrites(persistence.Meta)
		w.Set(name, key)
		err = store.Commit(w)
	}
	if err != nil {
		return nil, fmt.Errorf("key for cursors: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key for cursors: %w: %w", persistence.ErrCorrupt, err)
	}
	return cipher.NewGCM(block)
}

// listDigest stands for the list that a cursor is a place in. Each part is
// hashed with its length.
func listDigest(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// seal makes the text of a cursor.
func (r *Router) seal(p place, list []byte) string {
	plain := make([]byte, 0, 1+len(p.id)+len(p.value))
	plain = append(plain, cursorFormat)
	plain = append(plain, p.id[:]...)
	plain = append(plain, p.value...)
	nonce := make([]byte, r.cursors.NonceSize(), r.cursors.NonceSize()+len(plain)+r.cursors.Overhead())
	_, _ = rand.Read(nonce) // never fails, see above
	return base64.RawURLEncoding.EncodeToString(r.cursors.Seal(nonce, nonce, plain, list))
}

// unseal reads a cursor. ErrInvalid: it is none of this list's.
func (r *Router) unseal(text string, list []byte) (*place, error) {
	invalid := fmt.Errorf("%w: the cursor is not of this list", ErrInvalid)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// NB: the decoder passes over line ends, even a strict one.
	if err != nil || strings.ContainsAny(text, "\r\n") || len(sealed) < r.cursors.NonceSize() {
		return nil, invalid
	}
	n := r.cursors.NonceSize()
	plain, err := r.cursors.Open(nil, sealed[:n], sealed[n:], list)
	p := &place{}
	if err != nil || len(plain) < 1+len(p.id) || plain[0] != cursorFormat {
		return nil, invalid
	}
	copy(p.id[:], plain[1:])
	if p.value = plain[1+len(p.id):]; len(p.value) == 0 {
		p.value = nil
	}
	return p, nil
}
