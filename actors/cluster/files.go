package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"troupe/actors/cluster/peer"
)

const (
	IdentityFile  = "node.pem"      // IdentityFile has a node's key and certificate
	authorityFile = "authority.pem" // so that a node that was off for long can sign for itself
	nodesFile     = "nodes.json"    // where the others are
)

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

// Exists says whether the folder is that of a node.
func Exists(dir string) bool {
	_, err := os.Stat(files{dir}.path(IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

func (f files) keep(d *directory) error {
	addresses := map[peer.NodeID]string{}
	for id, m := range d.Nodes {
		addresses[id] = m.Address
	}
	text, err := json.MarshalIndent(addresses, "", "  ")
	if err != nil {
		return err
	}
	if err := f.write(nodesFile, text); err != nil {
		return err
	}
	return f.write(authorityFile, []byte(d.Authority))
}

func (f files) write(name string, text []byte) error {
	path := f.path(name)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	return peer.ReplaceFile(path, text)
}

func (f files) addresses() (map[peer.NodeID]string, error) {
	text, err := os.ReadFile(f.path(nodesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var known map[peer.NodeID]string
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read where the other nodes are: %s: %w; without the file the node waits until they greet it", f.path(nodesFile), err)
	}
	return known, nil
}

func (f files) authority() (*peer.Authority, error) {
	text, err := os.ReadFile(f.path(authorityFile))
	if err != nil {
		return nil, err
	}
	a, err := peer.ParseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(authorityFile), err)
	}
	return a, nil
}
