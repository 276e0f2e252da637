// Package lru caches values by key: the most recently used, each for its life. It is apimachinery's LRUExpireCache
// with types, so that keys and values are not packed into interfaces, and drops expired values before the cache is
// full. Caches with another bound say why.
package lru

import (
	"container/list"
	"math"
	"sync"
	"time"
)

// Forever is the life of values that stay while there is space.
const Forever time.Duration = math.MaxInt64

// Cache stores values by key. Many goroutines may use it. The zero value has no size limit.
type Cache[Key comparable, Value any] struct {
	most int
	now  func() time.Time

	mutex sync.Mutex
	byKey map[Key]*list.Element
	// order has *entry[Key, Value], the most recently used first.
	order list.List
}

type entry[Key comparable, Value any] struct {
	key   Key
	value Value
	// expires is the zero time for a value that stays while there is space.
	expires time.Time
}

// New makes a Cache of at most this number of values; 0 is without a bound. A nil clock is the real one.
func New[Key comparable, Value any](most int, now func() time.Time) *Cache[Key, Value] {
	return &Cache[Key, Value]{most: most, now: now}
}

// Get is the value of a key, until it expires.
func (c *Cache[Key, Value]) Get(key Key) (value Value, known bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.find(key); found != nil {
		return found.value, true
	}
	return value, false
}

// Put stores a value for its life. Expired values are dropped, the least recently used first.
func (c *Cache[Key, Value]) Put(key Key, value Value, life time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.put(key, value, life)
}

// Renew returns the value of a key, and makes it if there is none. Its life begins again.
func (c *Cache[Key, Value]) Renew(key Key, life time.Duration, made func() Value) Value {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.find(key); found != nil {
		found.expires = c.after(life)
		return found.value
	}
	value := made()
	c.put(key, value, life)
	return value
}

// Len counts the values, also expired ones that were not dropped yet.
func (c *Cache[Key, Value]) Len() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.order.Len()
}

// find returns an entry that has not expired and marks it as used.
func (c *Cache[Key, Value]) find(key Key) *entry[Key, Value] {
	element, known := c.byKey[key]
	if !known {
		return nil
	}
	found := element.Value.(*entry[Key, Value])
	if c.isExpired(found) {
		c.drop(element)
		return nil
	}
	c.order.MoveToFront(element)
	return found
}

func (c *Cache[Key, Value]) put(key Key, value Value, life time.Duration) {
	if element, known := c.byKey[key]; known {
		c.drop(element)
	}
	for last := c.order.Back(); last != nil && c.isExpired(last.Value.(*entry[Key, Value])); last = c.order.Back() {
		c.drop(last)
	}
	if c.most > 0 && c.order.Len() >= c.most {
		c.drop(c.order.Back())
	}
	if c.byKey == nil {
		c.byKey = map[Key]*list.Element{}
	}
	c.byKey[key] = c.order.PushFront(&entry[Key, Value]{key: key, value: value, expires: c.after(life)})
}

func (c *Cache[Key, Value]) drop(element *list.Element) {
	delete(c.byKey, c.order.Remove(element).(*entry[Key, Value]).key)
}

func (c *Cache[Key, Value]) isExpired(found *entry[Key, Value]) bool {
	return !found.expires.IsZero() && !c.clock().Before(found.expires)
}

func (c *Cache[Key, Value]) after(life time.Duration) time.Time {
	if life == Forever {
		return time.Time{}
	}
	return c.clock().Add(life)
}

func (c *Cache[Key, Value]) clock() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}
