package cluster

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence/key"
)

// save writes the identity last: it makes the files those of a node.
func save(dir string, identity *peer.Identity, d *directory) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f := files{dir}
	if err := f.keep(d); err != nil {
		return err
	}
	return identity.Save(f.path(IdentityFile))
}

func newIdentity() (*peer.Identity, error) {
	return peer.NewIdentity(peer.NodeID(ulid.Make().String()))
}

func found() (*peer.Identity, *peer.Authority, error) {
	now := time.Now()
	authority, err := peer.NewAuthority(peer.ClusterID(ulid.Make().String()), now)
	if err != nil {
		return nil, nil, err
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, nil, err
	}
	return identity, authority, sign(authority, identity, now)
}

func sign(authority *peer.Authority, identity *peer.Identity, now time.Time) error {
	csr, err := identity.CSR()
	if err != nil {
		return err
	}
	certificate, err := authority.Sign(csr, identity.Node(), now)
	if err != nil {
		return err
	}
	return identity.Accept(certificate, authority.Certificate())
}

var errRemoved = errors.New("this node was removed from the cluster; its folder is of no use any more")

const renewEvery = time.Hour

func (n *Node) renewLoop() {
	n.every(renewEvery, func(ctx context.Context) {
		if err := n.renew(); err != nil {
			n.o.Log.Error().Err(err).Msg("the node's certificate cannot be renewed")
		}
		if n.store.Epoch(key.Meta) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, keepMax)
		defer cancel()
		err := n.change(ctx, func(d *directory) error {
			authority, err := peer.ParseAuthority([]byte(d.Authority))
			if err != nil {
				return err
			}
			renewed, err := authority.Renewed(time.Now())
			if err == nil && renewed == authority {
				err = errUnchanged
			}
			if err != nil {
				return err
			}
			text, err := renewed.Marshal()
			d.Authority = string(text)
			return err
		})
		if err != nil && !errors.Is(err, failure.ErrElsewhere) {
			n.o.Log.Error().Err(err).Msg("the certificate of the cluster's authority cannot be renewed")
		}
	})
}

func (n *Node) renew() error {
	now := time.Now()
	if !n.identity.NeedsRenewal(now) {
		return nil
	}
	authority, err := n.files.authority()
	if err == nil { // NB: its own certificate may be one of the future too, and here nobody else is needed
		authority, err = authority.Renewed(now)
	}
	if err == nil {
		err = sign(authority, n.identity, now)
	}
	if err == nil {
		err = n.identity.Save(n.files.path(IdentityFile))
	}
	if err == nil {
		n.o.Log.Info().Time("expires", n.identity.Expires()).Msg("the node's certificate is renewed")
	}
	return err
}
