package identity

import (
	"encoding/binary"
	"fmt"
	"slices"

	"troupe/statemachine/packed"
)

// A row of another version is refused.
const (
	rowVersion      = 1
	rowVersionRoles = 2 // that of a session with roles of its own
)

const rowMaxBytes = 1024 + 130*sessionRolesMax

//	version 1 byte, kind 1 byte, digest 32 bytes,
//	id, user, note: each a uvarint length and its bytes,
//	with roles (version 2): uvarint number, each a uvarint length and its bytes,
//	created, expires, lastUsed, revoked: uvarint Unix milliseconds, 0 for never
//
// The secret is not in it.
func appendRow(dst []byte, e *entry, lastUsed int64) []byte {
	version := byte(rowVersion)
	if len(e.roles) > 0 {
		version = rowVersionRoles
	}
	dst = append(dst, version, byte(e.kind))
	dst = append(dst, e.digest[:]...)
	for _, text := range []string{e.id, string(e.user), e.note} {
		dst = packed.AppendText(dst, text)
	}
	if version == rowVersionRoles {
		dst = binary.AppendUvarint(dst, uint64(len(e.roles)))
		for _, role := range e.roles {
			dst = packed.AppendText(dst, string(role))
		}
	}
	for _, t := range []int64{e.created, e.expires, lastUsed, e.revoked.Load()} {
		dst = binary.AppendUvarint(dst, uint64(t))
	}
	return dst
}

// parseRow reads a stored row.
func parseRow(stored []byte) (*entry, error) {
	if len(stored) > rowMaxBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(stored))
	}
	r := packed.NewReader(stored)
	version := r.Byte()
	if version != rowVersion && version != rowVersionRoles {
		return nil, fmt.Errorf("%w: not of version %d or %d", ErrCorrupt, rowVersion, rowVersionRoles)
	}
	e := &entry{kind: Kind(r.Byte())}
	copy(e.digest[:], r.Take(len(e.digest)))
	e.id, e.user, e.note = string(r.Text()), UserID(r.Text()), string(r.Text())
	if version == rowVersionRoles {
		// NB: bounded before anything is allocated. Zero roles are refused below: that is not the shortest form.
		for range min(r.Uvarint(), sessionRolesMax+1) {
			e.roles = append(e.roles, RoleID(r.Text()))
		}
	}
	e.created, e.expires, e.stored = int64(r.Uvarint()), int64(r.Uvarint()), int64(r.Uvarint())
	e.lastUsed.Store(e.stored)
	e.revoked.Store(int64(r.Uvarint()))
	if !r.Whole() {
		return nil, fmt.Errorf("%w: %d bytes do not hold one credential", ErrCorrupt, len(stored))
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if !slices.Equal(appendRow(nil, e, e.stored), stored) {
		return nil, fmt.Errorf("%w: not in its shortest form", ErrCorrupt)
	}
	return e, nil
}

func (e *entry) check() error {
	switch {
	case e.kind != Token && e.kind != Session:
		return fmt.Errorf("%w: unknown kind %d", ErrCorrupt, e.kind)
	case len(e.id) != idChars:
		return fmt.Errorf("%w: id of %d bytes", ErrCorrupt, len(e.id))
	case e.user == "":
		return fmt.Errorf("%w: no user", ErrCorrupt)
	case len(e.roles) > sessionRolesMax || len(e.roles) > 0 && e.kind != Session || slices.Contains(e.roles, ""):
		return fmt.Errorf("%w: roles that nobody gives", ErrCorrupt)
	case e.created <= 0:
		return fmt.Errorf("%w: no time of creation", ErrCorrupt)
	case e.expires < 0, e.stored < 0, e.revoked.Load() < 0:
		return fmt.Errorf("%w: a time before 1970", ErrCorrupt)
	}
	return nil
}
