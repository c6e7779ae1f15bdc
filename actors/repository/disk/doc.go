// Package disk is a folder of the disk as the place where the files of a repository are. It is the only code of the
// repository that touches files.
//
//	path ──canonical?──► os.Root ──name by name, no links──► fstat: a regular file
//
// What is promised:
//
//   - Nothing outside the folder is read, and nothing through a link, also while somebody swaps files, folders and
//     links.
//   - Only regular files are opened, so that no pipe or device keeps a request waiting.
//   - A file with several names is read only when it belongs to the owner of the folder, because the other names may
//     lie outside.
//
// fsnotify tells of changes, folder by folder. Where it cannot (limits of the system, network file systems) a listing
// says that its folder is not watched, and the caller has to list it again.
package disk
