package key

import "encoding/binary"

// FeedPlace is where a row stands in the feed of a shard: its time in Unix milliseconds, and a number that tells it
// from others of that time. Places of a shard only grow, also when a clock is set back; one that was given and not
// committed is never given again, and neither is one after a store was put back to an earlier moment.
type FeedPlace uint64

// feedNumberBits is how many bits of a place are the number. More rows in a millisecond
// take the places of the next one.
const feedNumberBits = 10

// FeedPlaceAt is the first place of a time in Unix milliseconds, 0 or later.
func FeedPlaceAt(ms int64) FeedPlace { return FeedPlace(max(ms, 0)) << feedNumberBits }

// Time is the time of a place in Unix milliseconds.
func (p FeedPlace) Time() int64 { return int64(p >> feedNumberBits) }

// FeedBytes is how long the keys of a feed are.
const FeedBytes = shardBytes + 1 + 8

// Feed appends the key of a row of the feed of sh.
func Feed(dst []byte, sh Shard, place FeedPlace) []byte {
	return binary.BigEndian.AppendUint64(FeedPrefix(dst, sh), uint64(place))
}

// FeedFloor appends the key of how much of the feed of sh was removed. It stands before all rows,
// which have no place 0.
func FeedFloor(dst []byte, sh Shard) []byte { return Feed(dst, sh, 0) }

// FeedPrefix appends the prefix of the feed of sh, in the order of the places.
func FeedPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, feedTable) }

// ParseFeed returns the place of a row of a feed. It is false for other keys, and for the one of how much was removed.
func ParseFeed(key []byte) (FeedPlace, bool) {
	if len(key) != FeedBytes || !isOf(key, feedTable) {
		return 0, false
	}
	place := FeedPlace(binary.BigEndian.Uint64(key[FeedBytes-8:]))
	return place, place != 0
}
