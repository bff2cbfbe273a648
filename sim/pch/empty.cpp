// Nothing. See `filler` in meson.build.
