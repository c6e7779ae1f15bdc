// Package cluster has only a test. It runs a cluster of three processes under load, hurts it again and again, and looks
// whether anything that was acknowledged is missing, or there twice:
//
//	go test -v -timeout 1h ./cmd/internal/endtoend/cluster -episodes 50 -record FILE
//
// Kinds of episodes (-kinds):
//
//	kill     kill -9 of a node, and its start
//	pause    SIGSTOP for 1 to 8 s, longer than a leader keeps its lease, then SIGCONT
//	stop     SIGTERM, and its start
//	two      kill -9 of two nodes at once
//	all      kill -9 of all
//	replace  kill -9, and the folder is lost: remove --lost, invite, join
//
// Others need a network namespace and a file system for each node, which the test makes and removes; it must be run by
// root on Linux with iproute2, mkfs.ext4 and fsfreeze:
//
//	cut      a node and the others lose each other
//	mute     what a node sends is lost, what is sent to it is not
//	deaf     the other way round
//	bridge   two nodes lose each other, the third sees both
//	split    all lose each other
//	flap     a node is cut off and comes back ten times
//	disk     the disk of a node takes no writes
//
// Clients reach all nodes meanwhile, also those that are cut off: such a node may refuse, and never shows what is not
// acknowledged or no longer true.
//
// An episode takes up to 8 s: some are shorter and some longer than a lease, an election, and the 4 s after which a
// node ends whose disk takes no write.
//
// Meanwhile workers send events and batches to instances of their own, each with one key until it is acknowledged,
// however often and wherever that takes them. So it is known exactly what each instance must have: every
// acknowledgement has to bear the next number of its instance, and reads through any node have to give what was
// acknowledged last. Others send to instances that they share, and read them through any node: what they saw must be
// linearizable, which porcupine judges; when it cannot tell in a minute, that is a failure too. At the end all nodes
// are killed, and each replica is made a cluster of its own (troupe cluster recover) and must have everything.
//
// Times are recorded and never judged, except that a cluster that is not whole two minutes after an episode is a
// failure. The order of episodes comes from -seed; what they meet does not. An interrupt ends the run after the episode
// that is under way, and what was seen is judged and recorded.
package cluster
