package endtoend

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

// machine is where a node runs: a network namespace with an address of its own, and a folder on a
// file system of its own.
type machine struct {
	index     int
	namespace string
	ip        string
	disk      string // where its file system is mounted
}

// network is a bridge to which namespaces are tied, one for each node. A link is cut by a wrong
// hardware address of the other end: what is sent is lost without an error.
type network struct {
	bridge string
	nodes  []*machine
	undo   []func(context.Context) error
}

func sh(ctx context.Context, words string) error {
	w := strings.Fields(words)
	_, err := process.Output(ctx, w[0], w[1:]...)
	return err
}

// hardware is the address of a node, or one that nobody has.
func (m *machine) hardware(cut bool) string {
	return fmt.Sprintf("02:00:00:00:%02x:%02x", map[bool]int{true: 1}[cut], m.index+1)
}

// newNetwork makes some namespaces, and the disks below dir. close removes what it made, also after an error.
func newNetwork(ctx context.Context, dir string, count int) (*network, error) {
	// NB: an interface's name has 15 bytes at most, and other runs may be there.
	name := "tr" + strconv.Itoa(os.Getpid())
	subnet := fmt.Sprintf("10.213.%d.", os.Getpid()%250+1)
	n := &network{bridge: name, nodes: make([]*machine, count)}
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
	for i := range n.nodes {
		m := &machine{index: i}
		n.nodes[i] = m
		link := name + string(rune('a'+i))
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
		if err := errors.Join(err, n.newDisk(ctx, m, dir)); err != nil {
			return n, err
		}
	}
	return n, n.heal(ctx)
}

func (n *network) machines() (all []Machine) {
	for _, m := range n.nodes {
		all = append(all, Machine{Enter: []string{"ip", "netns", "exec", m.namespace}, IP: m.ip, Dir: m.disk})
	}
	return all
}

func (n *network) of(node *Node) *machine {
	return n.nodes[slices.IndexFunc(n.nodes, func(m *machine) bool { return m.ip == node.IP })]
}

// link cuts what from sends to to, or mends it.
func (n *network) link(ctx context.Context, from, to *machine, cut bool) error {
	return sh(ctx, "ip -n "+from.namespace+" neigh replace "+to.ip+" lladdr "+to.hardware(cut)+" dev eth0 nud permanent")
}

// cut is link in both directions.
func (n *network) cut(ctx context.Context, a, b *machine, cut bool) error {
	return errors.Join(n.link(ctx, a, b, cut), n.link(ctx, b, a, cut))
}

func (n *network) heal(ctx context.Context) error {
	var errs []error
	for _, from := range n.nodes {
		for _, to := range n.nodes {
			if from != to {
				errs = append(errs, n.link(ctx, from, to, false))
			}
		}
	}
	return errors.Join(errs...)
}

// newDisk gives a machine a file system of its own in a file, below dir.
func (n *network) newDisk(ctx context.Context, m *machine, dir string) error {
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

func (m *machine) freeze(ctx context.Context) error { return sh(ctx, "fsfreeze -f "+m.disk) }

func (m *machine) thaw(ctx context.Context) error { return sh(ctx, "fsfreeze -u "+m.disk) }

// close removes what was made. No process may run there any more.
func (n *network) close(ctx context.Context) error {
	if n == nil {
		return nil
	}
	var errs []error
	for _, undo := range slices.Backward(n.undo) {
		errs = append(errs, undo(ctx))
	}
	n.undo = nil
	return errors.Join(errs...)
}
