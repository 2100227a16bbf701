
/* Above this, nobody counts: the object is never freed, and never written to because somebody refers to it. */
#define JS_IMMORTAL 0x40000000

static inline int js_count_up(const void *p)
{
    int *count = &JS_REF_COUNT(p);
    if (*count < JS_IMMORTAL)
        ++*count;
    return *count;
}

static inline int js_count_down(const void *p)
{
    int *count = &JS_REF_COUNT(p);
    if (*count < JS_IMMORTAL)
        --*count;
    return *count;
}
