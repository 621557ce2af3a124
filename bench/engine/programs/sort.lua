-- SPDX-License-Identifier: BSD-2-Clause
-- Sorting strings, flipping pancakes (fannkuch), counting in a table.
local n = tonumber(arg and arg[1]) or 1
local x = 42
local function rnd(m) x = (x * 1103515245 + 12345) & 0x7fffffff; return x % m end
for r = 1, n do
  local words = {}
  for i = 1, 12000 do words[i] = ("%08x"):format(rnd(1 << 30)) end
  table.sort(words)
  local p, q, s, maxflips = {}, {}, {}, 0
  local N = 7
  for i = 1, N do p[i], q[i], s[i] = i, i, i end
  local sign, sum = 1, 0
  repeat
    local q0 = p[1]
    if q0 ~= 1 then
      for i = 2, N do q[i] = p[i] end
      local flips = 1
      repeat
        local qq = q[q0]
        if qq == 1 then sum = sum + sign * flips; if flips > maxflips then maxflips = flips end; break end
        q[q0] = q0
        if q0 >= 4 then local i, j = 2, q0 - 1; repeat q[i], q[j] = q[j], q[i]; i = i + 1; j = j - 1 until i >= j end
        q0 = qq; flips = flips + 1
      until false
    end
    if sign == 1 then p[1], p[2] = p[2], p[1]; sign = -1
    else
      p[2], p[3] = p[3], p[2]; sign = 1
      for i = 3, N do
        local sx = s[i]
        if sx ~= 1 then s[i] = sx - 1; break end
        if i == N then print(sum, maxflips); goto done end
        s[i] = i
        local t = p[1]; for j = 1, i do p[j] = p[j + 1] end; p[i + 1] = t
      end
    end
  until false
  ::done::
  local h = {}
  for i = 1, 100000 do local k = "k" .. rnd(5000); h[k] = (h[k] or 0) + i end
  local c = 0
  for k, v in pairs(h) do c = c ~ v end
  print(c)
end
