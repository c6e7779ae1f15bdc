package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"troupe/bench/process"
)

// diskMiB is the size of a disk that can be held.
const diskMiB = 16 << 10

// Machine is where a node runs: this one, a network namespace with an address of its own,
// a folder on a file system of its own.
type Machine struct {
	index     int
	namespace string // empty: that of this process
	ip        string
	disk      string // where its file system is mounted; empty: none of its own
}

// Network is a bridge to which namespaces are tied, one for each node. A link is cut by a wrong
// hardware address of the other end: what is sent is lost without an error.
type Network struct {
	bridge string
	nodes  []*Machine
	undo   []func(context.Context) error
}

func sh(ctx context.Context, words string) error {
	w := strings.Fields(words)
	_, err := process.Output(ctx, w[0], w[1:]...)
	return err
}

// hardware is the address of a node, or one that nobody has.
func (m *Machine) hardware(cut bool) string {
	return fmt.Sprintf("02:00:00:00:%02x:%02x", map[bool]int{true: 1}[cut], m.index+1)
}

// newNetwork makes the namespaces. close removes what it made, also after an error.
func newNetwork(ctx context.Context, machines []*Machine) (*Network, error) {
	// NB: an interface's name has 15 bytes at most, and other runs may be there.
	name := "tr" + strconv.Itoa(os.Getpid())
	subnet := fmt.Sprintf("10.213.%d.", os.Getpid()%250+1)
	n := &Network{bridge: name, nodes: machines}
	commands := func(lines ...string) error {
		for _, l := range lines {
			if err := sh(ctx, l); err != nil {
				return err
			}
		}
		return nil
	}
	if err := sh(ctx, "ip link add "+n.bridge+" type bridge"); err != nil {
		return n, err
	}
	n.undo = append(n.undo, func(ctx context.Context) error { return sh(ctx, "ip link del "+n.bridge) })
	if err := commands("ip addr add "+subnet+"1/24 dev "+n.bridge, "ip link set "+n.bridge+" up"); err != nil {
		return n, err
	}
	for _, m := range machines {
		link := name + string(rune('a'+m.index))
		if err := sh(ctx, "ip netns add "+link); err != nil {
			return n, err
		}
		m.namespace, m.ip = link, subnet+strconv.Itoa(m.index+11)
		n.undo = append(n.undo, func(ctx context.Context) error { return sh(ctx, "ip netns del "+link) })
		err := commands(
			"ip link add "+link+" type veth peer name eth0 netns "+link,
			"ip link set "+link+" master "+n.bridge, "ip link set "+link+" up",
			"ip -n "+link+" link set eth0 address "+m.hardware(false),
			"ip -n "+link+" addr add "+m.ip+"/24 dev eth0",
			"ip -n "+link+" link set eth0 up", "ip -n "+link+" link set lo up",
		)
		if err != nil {
			return n, err
		}
	}
	return n, n.Heal(ctx)
}

// Link cuts what from sends to to, or mends it.
func (n *Network) Link(ctx context.Context, from, to *Machine, cut bool) error {
	return sh(ctx, "ip -n "+from.namespace+" neigh replace "+to.ip+" lladdr "+to.hardware(cut)+" dev eth0 nud permanent")
}

// Cut is Link in both directions.
func (n *Network) Cut(ctx context.Context, a, b *Machine, cut bool) error {
	return errors.Join(n.Link(ctx, a, b, cut), n.Link(ctx, b, a, cut))
}

// Heal mends all links.
func (n *Network) Heal(ctx context.Context) error {
	var errs []error
	for _, from := range n.nodes {
		for _, to := range n.nodes {
			if from != to {
				errs = append(errs, n.Link(ctx, from, to, false))
			}
		}
	}
	return errors.Join(errs...)
}

// newDisk gives a machine a file system of its own in a file, below dir.
func (n *Network) newDisk(ctx context.Context, m *Machine, dir string) error {
	image := filepath.Join(dir, string(rune('a'+m.index))+".image")
	mount := strings.TrimSuffix(image, ".image") + ".disk"
	file, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(diskMiB<<20), file.Close(), os.Mkdir(mount, 0o755), sh(ctx, "mkfs.ext4 -q "+image), sh(ctx, "mount -o loop "+image+" "+mount)); err != nil {
		return err
	}
	m.disk = mount
	n.undo = append(n.undo, func(ctx context.Context) error { return sh(ctx, "umount "+mount) })
	return nil
}

// Freeze holds all writes of a machine's disk up.
func (m *Machine) Freeze(ctx context.Context) error { return sh(ctx, "fsfreeze -f "+m.disk) }

// Thaw lets the writes through.
func (m *Machine) Thaw(ctx context.Context) error { return sh(ctx, "fsfreeze -u "+m.disk) }

// close removes what was made. No process may run there any more.
func (n *Network) close(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(n.undo) {
		errs = append(errs, undo(ctx))
	}
	n.undo = nil
	return errors.Join(errs...)
}

// command is how a program is started on a machine.
func (m *Machine) command(program string, args ...string) []string {
	command := append([]string{program}, args...)
	if m.namespace != "" {
		command = append([]string{"ip", "netns", "exec", m.namespace}, command...)
	}
	return command
}
