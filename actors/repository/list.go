package repository

import "context"

type listing struct {
	ctx       context.Context // of the call
	extension Extension
	yield     func(path string) error
	path      []byte // of the folder in which it is, with a slash behind
	steps     int
}

// stepsUnasked is how many names are passed between two looks at the context.
const stepsUnasked = 4096

func (s *snapshot) list(ctx context.Context, extension Extension, v view, yield func(path string) error) error {
	l := &listing{ctx: ctx, extension: extension, yield: yield, path: []byte(top)}
	return l.folder(s.root, v)
}

func (l *listing) folder(n *node, v view) error {
	settled := v.settled()
	if settled && !v.readable {
		return nil
	}
	files, here := n.files.len(), len(l.path)
	for i, j := 0, 0; i < files || j < len(n.folders); {
		if l.steps++; l.steps%stepsUnasked == 0 && l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		if j < len(n.folders) && (i == files || !isBeforeFolder(n.files.at(i), n.folders[j].name)) {
			c := n.folders[j]
			j++
			l.path = append(append(l.path, c.name...), '/')
			if err := l.folder(c.node, v.enter(c.name, isFolder)); err != nil {
				return err
			}
			l.path = l.path[:here]
			continue
		}
		name := n.files.at(i)
		i++
		if !l.extension.Matches(name) {
			continue
		}
		if !settled {
			if own := v.enter(name, isFile); !own.readable {
				continue
			}
		}
		if err := l.yield(string(l.path) + name); err != nil {
			return err
		}
	}
	return nil
}
