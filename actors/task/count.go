package task

import (
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// CountOpen returns how many tasks are open in a shard. It reads the worklists: the rows by the names of tasks have those that
// were decided too, which are many more.
func CountOpen(s *persistence.Store, sh key.Shard) (int64, error) {
	type part struct {
		id       key.ID
		sequence uint64
		number   uint32
	}
	open := map[part]struct{}{} // one with several candidates stands in the lists of all of them
	var ranges []key.Range
	for _, letter := range []byte{listRole, listPrivilege, listUser, listEverybody, listNobody, listMine} {
		ranges = append(ranges, key.Range{Prefix: append(key.WorksPrefix(nil, sh), letter)})
	}
	err := s.ScanRanges(func(rowKey, _ []byte) error {
		_, w, ok := key.ParseWork(rowKey)
		if !ok {
			return persistence.ErrCorrupt
		}
		if Order(w.Order) == ByCreated { // it stands there once in each order
			open[part{w.ID, w.Sequence, w.Number}] = struct{}{}
		}
		return nil
	}, ranges...)
	return int64(len(open)), failure.OfStore(err)
}
