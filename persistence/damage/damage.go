// Package damage says what is wrong with the files of a store that does not open for it. Whether they fit each other wholly only
// an opened store can say (persistence.Store.Verify).
package damage

import (
	"context"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
)

// Find reads the MANIFEST, the live logs and every block of all tables in the folder of a store that nobody uses. tables
// is how many it read, and found what is wrong. It changes nothing.
func Find(ctx context.Context, dir string) (found []error, tables int, err error) {
	found = integrity.CheckFiles(vfs.Default, dir)
	all, err := integrity.TableFiles(vfs.Default, dir)
	if err != nil {
		return found, 0, err
	}
	o := engine.Options(vfs.Default, nil, 0, 0)
	o.EnsureDefaults()
	for _, t := range all {
		if err := ctx.Err(); err != nil {
			return found, tables, err
		}
		if err := integrity.CheckTable(t, vfs.Default, dir, o.MakeReaderOptions()); err != nil {
			found = append(found, err)
		}
		tables++
	}
	return found, tables, nil
}
