// Package disk is a folder of the disk as the place where the files of a repository are; it is the only code of the
// repository that touches files. Nothing outside the folder is read, and nothing through a link, also while somebody
// swaps files, folders and links: a path is opened name by name. Only regular files are opened, so that no pipe or
// device keeps a request waiting. A file with several names is read only when it belongs to the owner of the folder,
// because the other names may lie outside. fsnotify tells of changes; where it cannot, a listing says that its folder
// is not watched.
package disk
