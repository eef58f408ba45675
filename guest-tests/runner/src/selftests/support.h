/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/*
 * Included before every file of an i915 with self-tests that is built for a kernel without CONFIG_FAULT_INJECTION and
 * CONFIG_DRM_EXPORT_FOR_TESTS.
 */
#include <linux/atomic.h>
#include <linux/fault-inject.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <drm/drm_file.h>

/*
 * Fault injection by the attributes that the self-tests set. CONFIG_FAULT_INJECTION changes task_struct, so a module
 * cannot have it alone.
 */
struct support_fault_attr {
	unsigned long probability;
	unsigned long interval;
	atomic_t times;
	unsigned long count;
};

static inline bool support_should_fail(struct support_fault_attr *attr, ssize_t size)
{
	if (!attr->probability || !atomic_read(&attr->times))
		return false;
	if (attr->interval > 1 && ++attr->count % attr->interval)
		return false;
	if (attr->probability <= get_random_u32_below(100))
		return false;
	atomic_dec_if_positive(&attr->times);
	return true;
}

#define fault_attr support_fault_attr
#define should_fail support_should_fail

/* Opens the card's node: the kernel's mock_drm_getfile is not exported. */
static inline struct file *support_drm_getfile(struct drm_minor *minor, unsigned int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/dri/card%d", minor->index);
	return filp_open(path, flags, 0);
}

#define mock_drm_getfile support_drm_getfile
