// Package cluster has only a test. It runs a cluster of three processes under load, hurts it again and again, and looks
// whether anything that was acknowledged is missing, or there twice:
//
// go test -v -timeout 1h ./cmd/internal/endtoend/cluster -episodes 50 -record FILE
//
// -kinds chooses the kinds of episodes: kill, pause, stop, two, all, replace; and, with a network namespace and a file
// system for each node (root on Linux with iproute2, mkfs.ext4 and fsfreeze): cut, mute, deaf, bridge, split, flap,
// disk.
//
// Workers send events and batches to instances of their own, each with one key until it is acknowledged: every
// acknowledgement has to bear the next number of its instance, and reads through any node have to give what was
// acknowledged last. Others share instances, and what they saw must be linearizable, which porcupine judges. At the end
// all nodes are killed, and each replica is made a cluster of its own (troupe cluster recover) and must have
// everything. Times are recorded and never judged, except that a cluster must be whole two minutes after an episode.
// -seed orders the episodes; an interrupt ends the run after the one that is under way.
package cluster
